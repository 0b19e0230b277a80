package reload

// Load puts the limits of a file in force.
var Load = (*Limits).load
