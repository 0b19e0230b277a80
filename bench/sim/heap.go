package sim

// heap has four children to a node: it is shallow, and a node's children lie in one cache
// line or two.
type heap[T interface{ Before(other T) bool }] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	all := *h
	i := len(all) - 1
	for i > 0 && x.Before(all[(i-1)/4]) {
		all[i] = all[(i-1)/4]
		i = (i - 1) / 4
	}
	all[i] = x
}

func (h *heap[T]) pop() T {
	all := *h
	n := len(all) - 1
	first, x := all[0], all[n]
	clear(all[n:])
	all = all[:n]
	*h = all
	for i := 0; n > 0; {
		least := 4*i + 1
		for c := least + 1; c < min(4*i+5, n); c++ {
			if all[c].Before(all[least]) {
				least = c
			}
		}
		if least >= n || !all[least].Before(x) {
			all[i] = x
			break
		}
		all[i] = all[least]
		i = least
	}
	return first
}
