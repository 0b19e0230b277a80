package distributed

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// script is a Lua script that decides for any number of keys. Arguments and
// replies are integers: args of them for each key, and a reply that begins with
// the server's time in microseconds, with replies integers for each key.
//
// The clock is always the server's own, so the clocks of the instances do not
// matter.
type script struct {
	name          string
	source        string
	sha           string
	args, replies int
}

func newScript(name, source string, args, replies int) *script {
	sum := sha1.Sum([]byte(source))
	return &script{name, source, hex.EncodeToString(sum[:]), args, replies}
}

//go:embed prelude.lua
var prelude string

//go:embed bucket.lua
var bucketSource string

//go:embed fixedwindow.lua
var fixedSource string

//go:embed slidingwindow.lua
var slidingSource string

//go:embed held.lua
var heldSource string

//go:embed together.lua
var togetherSource string

var (
	bucketScript  = newScript("bucket", prelude+bucketSource, 5, 3)
	fixedScript   = newScript("fixed window", prelude+fixedSource, 4, 4)
	slidingScript = newScript("sliding window", prelude+slidingSource, 4, 5)
	heldScript    = newScript("held", prelude+heldSource, 6, 6)

	// togetherScript decides about all of its keys as one, so entries with it
	// are never joined.
	togetherScript = newScript("together", prelude+togetherSource, 4, 3)
)

// The operations that the first argument of every script names.
const (
	opAcquire = iota // decide and charge; a cost of 0 looks and changes nothing
	opRefund         // give back what a charge still weighs
	opOwe            // charge whether it fits or not
	opReset          // forget the key
	opBlock          // deny everything for a time
	opRenew          // keep what is held from expiring
	opAsk            // decide and do not charge
)

// What the last reply of a key says about it.
const (
	flagFine    = iota
	flagBlocked // by opBlock
	flagType    // the key holds another type of value, and is left alone
)

const (
	mostArgs    = 6 // of any script
	mostReplies = 6
)

// args are the arguments of a script for one key; how many of them count is
// the script's to say.
type args [mostArgs]int64
