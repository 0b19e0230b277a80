package class

import "strings"

// maxField is the length of a Priority field beyond which it is ignored, in bytes.
const maxField = 256

// ofUrgency are the classes of the urgencies of RFC 9218, section 4.1: 0, the most
// urgent, to 7; 3 is the default.
var ofUrgency = [...]Class{Critical, High, High, Normal, Low, Low, Sheddable, Sheddable}

var fields = [Count]string{"u=0", "u=1", "u=3", "u=5", "u=7"}

// Field is the value of the Priority field for a class.
func (c Class) Field() string { return fields[c.clamp()] }

// ParseField is the class in the lines of a Priority field; false without an urgency
// from 0 to 7. Of several the last one counts. Other members are not looked at; a field
// with a string, which no member of RFC 9218 has, is ignored.
func ParseField(lines []string) (c Class, ok bool) {
	length := 0
	for _, line := range lines {
		if length += len(line); length > maxField || strings.Contains(line, `"`) {
			return Normal, false
		}
	}
	c = Normal
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			key, value, _ := strings.Cut(strings.Trim(member, " \t"), "=")
			if key != "u" {
				continue
			}
			value, _, _ = strings.Cut(value, ";")
			c, ok = Normal, len(value) == 1 && '0' <= value[0] && value[0] <= '7'
			if ok {
				c = ofUrgency[value[0]-'0']
			}
		}
	}
	return c, ok
}
