package algo

import "unsafe"

func sizeOf[T any]() uintptr {
	var v T
	return unsafe.Sizeof(v)
}
