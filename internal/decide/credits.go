package decide

// MaxBalance is the largest balance of prepaid credits, and the largest charge: the
// largest integer that a script on Redis counts exactly.
const MaxBalance = 1<<53 - 1
