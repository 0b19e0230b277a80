package distributed

import (
	"crypto/fips140"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// script is a Lua script that decides for any number of keys. Arguments and
// replies are integers: args of them for each key, and a reply that begins with
// the server's time in microseconds, followed by replies integers for each key.
//
// The clock is always the server's, so the clocks of the instances do not
// matter.
type script struct {
	name          string
	source        string
	word          any // its SHA-1 in hexadecimal, as EVALSHA takes it
	args, replies int
}

func newScript(name, source string, args, replies int) *script {
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(source)) }) // the name of a script, not a secret
	return &script{name, source, hex.EncodeToString(sum[:]), args, replies}
}

//go:embed prelude.lua
var prelude string

//go:embed bucket.lua
var bucketSource string

//go:embed fixedwindow.lua
var fixedWindowSource string

//go:embed slidingwindow.lua
var slidingWindowSource string

//go:embed credits.lua
var creditsSource string

//go:embed creditsops.lua
var creditsOpsSource string

//go:embed unitset.lua
var unitSetSource string

var (
	bucketScript        = newScript("bucket", prelude+creditsSource+bucketSource, 6, 3)
	fixedWindowScript   = newScript("fixed window", prelude+creditsSource+fixedWindowSource, 7, 3)
	slidingWindowScript = newScript("sliding window", prelude+slidingWindowSource, 6, 5)
	creditsScript       = newScript("credits", prelude+creditsSource+creditsOpsSource, 3, 2)
	logScript           = newScript("sliding log", prelude+"local KIND, LOG = 'w', true\n"+unitSetSource, 7, 5)
	inFlightScript      = newScript("in-flight limit", prelude+"local KIND, LOG = 'v', false\n"+unitSetSource, 7, 5)
)

// The operations that the first argument of every script names.
const (
	opAcquire    = iota // decide and charge; a cost of 0 is a peek
	opRefund            // give back the part of a charge that still counts
	opForce             // charge whether it fits or not
	opReset             // forget the key's debt
	opBan               // deny everything for a time
	opRenew             // keep units in flight from expiring
	opAcquireAll        // decide about several keys and charge all of them or none
	opPeekAll           // the same without a charge
	opFirst             // decide about a plan and the credits that follow it
	opCredits           // the credits that follow a plan
	opReserve           // decide, charge and keep a record
	opSettle            // correct a charge by its record
	opLease             // add units that were leased
	opGiveBack          // give back units that still count, of whatever charge

	opReplace = opAcquireAll // opForce for a sliding log
)

// The last reply of a key.
const (
	flagDenied = iota
	flagAdmitted
	flagBanned    // by opBan
	flagWrongType // the key holds the value of another algorithm or program, and is left alone

	flagMixed // added to the others: other parameters are in use on the key
)

const (
	maxArgs    = 7 // of any script
	maxReplies = 5 // of most; shares have more
)

// args are the arguments of a script for one key; each script uses the first
// script.args of them.
type args [maxArgs]int64
