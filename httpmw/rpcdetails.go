package httpmw

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// detailsDomain is the domain of ErrorInfo that package grpcmw sends by default.
const detailsDomain = "sluice"

// statusDetails is the field grpc-status-details-bin: a google.rpc.Status with the
// details that package grpcmw sends. It is encoded here because the library of
// Protocol Buffers is larger than this package.
func (f *refusal) statusDetails(code string) string {
	n, _ := strconv.ParseUint(code, 10, 32)
	status := varint(nil, 1, n)
	status = text(status, 2, f.Title)
	info := text(nil, 1, f.Reason)
	info = text(info, 2, detailsDomain)
	if f.policy != "" {
		info = text(info, 3, string(text(text(nil, 1, "policy"), 2, f.policy))) // an entry of a map
	}
	status = detail(status, "ErrorInfo", info)
	if f.Status == http.StatusTooManyRequests {
		var failure []byte
		for _, q := range f.quota {
			failure = text(failure, 1, string(text(text(nil, 1, q.class), 2, "policy "+q.policy)))
		}
		status = detail(status, "QuotaFailure", failure)
	}
	if f.wait != algo.Forever {
		delay := varint(nil, 1, uint64(f.wait/time.Second))
		delay = varint(delay, 2, uint64(f.wait%time.Second))
		status = detail(status, "RetryInfo", text(nil, 1, string(delay)))
	}
	return base64.RawStdEncoding.EncodeToString(status)
}

// detail appends a message of google.rpc to a status, as google.protobuf.Any.
func detail(status []byte, name string, message []byte) []byte {
	packed := text(nil, 1, "type.googleapis.com/google.rpc."+name)
	return text(status, 3, string(text(packed, 2, string(message))))
}

// varint appends a field with an integer, unless it is 0.
func varint(b []byte, field, value uint64) []byte {
	if value == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, field<<3), value)
}

// text appends a field with a text or a message.
func text(b []byte, field uint64, value string) []byte {
	const lengthDelimited = 2
	b = binary.AppendUvarint(b, field<<3|lengthDelimited)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}
