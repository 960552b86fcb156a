package ipam

// Selector chooses objects by their labels, such as the nodes of a rack.
type Selector interface {
	// Matches reports whether an object with these labels is meant.
	Matches(labels map[string]string) bool
	// String writes the selector as kubectl takes it behind -l.
	String() string
}
