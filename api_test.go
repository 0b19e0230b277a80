package sluice_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/workshop/apirecord"
)

// TestPublicAPI: the public API is the one on record ("make api" writes it), and
// go doc shows every method that a user may call.
func TestPublicAPI(t *testing.T) { apirecord.Check(t, "internal/workshop/apirecord/public") }
