package ipam

// poolMembers has the addresses by the pool that their objects name: every entry is a member of one pool.
type poolMembers struct{ byPool map[string]*members }

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
	// retained are the reserved ones that are for a claim.
	retained int
	// draining are the held ones that are no longer in the pool's plan.
	draining map[*record]struct{}
}
