package v1

// Marks of a pool that a ConfigMap in the manner of galaxy's floatingip-config keeps.
const (
	// SourceLabel on a pool says what keeps it. People may use it to select pools; only the annotation counts.
	SourceLabel = "networkextension.bkbcs.tencent.com/source"
	// SourceFloatingIP is the value of SourceLabel for a floatingip-config.
	SourceFloatingIP = "floatingip-config"
	// FloatingIPConfigAnnotation names the ConfigMap, NAMESPACE/NAME.
	FloatingIPConfigAnnotation = "networkextension.bkbcs.tencent.com/floatingip-config"
	// FloatingIPGoneAnnotation is "true" on a pool whose entry has gone from the ConfigMap: it was cordoned for that,
	// and goes when none of its addresses is held.
	FloatingIPGoneAnnotation = "networkextension.bkbcs.tencent.com/floatingip-gone"
)
