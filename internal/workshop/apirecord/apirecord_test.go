package apirecord

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func sample(t *testing.T) *Package {
	t.Chdir("testdata/sample")
	packages, err := load(func(string) bool { return true })
	require.NoError(t, err)
	require.Len(t, packages, 1)
	return packages[0]
}

func TestHidden(t *testing.T) {
	hidden, err := sample(t).Hidden()
	require.NoError(t, err)
	require.Equal(t, []string{"Limit.Reset", "New returns direct", "Stream.Read"}, hidden)
}

func TestDeclarations(t *testing.T) {
	require.Equal(t, []string{
		"const Answer untyped int = 42",
		"func Do(Func) io.Reader",
		"func New() *direct",
		"method (*Limit) Reset(string)",
		"method (*Limit) SetRate(int, ...int) (int, error)",
		"method (File) Close() error",
		"method (Limit) Len() int",
		"method (Stream) Read([]byte) (int, error)",
		"type Alias = Limit",
		"type File struct",
		"type File struct, Closer io.Closer",
		"type Func func(string) bool",
		"type Limit struct",
		"type Limit struct, Burst int",
		"type Reader interface",
		"type Reader interface, Read([]byte) (int, error)",
		"type Reader interface, with unexported methods",
		"type Stream struct",
		"var Default Limit",
	}, sample(t).Declarations())
}
