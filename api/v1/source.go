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

// Marks of a block that a ConfigMap in the manner of hostnic's hostnic-ipam-config gives to a namespace.
const (
	// SourceHostnic is the value of SourceLabel for a hostnic-ipam-config.
	SourceHostnic = "hostnic-ipam-config"
	// HostnicConfigAnnotation names the ConfigMap, NAMESPACE/NAME. A block with it stays while the ConfigMap names it.
	HostnicConfigAnnotation = "networkextension.bkbcs.tencent.com/hostnic-ipam-config"
	// HostnicFoundAnnotation has the priority that a block had which its namespace had got before the ConfigMap named
	// it: it is the namespace's again, as it was, when the ConfigMap no longer does so.
	HostnicFoundAnnotation = "networkextension.bkbcs.tencent.com/hostnic-found"
	// HostnicGoneAnnotation is "true" on a block that the ConfigMap no longer gives to its namespace: it was cordoned
	// for that, and is deleted when it is empty.
	HostnicGoneAnnotation = "networkextension.bkbcs.tencent.com/hostnic-gone"
)

// ImportedLabel on a pool or claim names the system from which an import made it, as the command import does.
const ImportedLabel = "networkextension.bkbcs.tencent.com/imported-from"

// WithdrawnAnnotation on an object of another system lists addresses, as "a-b, c". The object keeps that system from
// allocating them, because a cut-over has taken them over.
const WithdrawnAnnotation = "networkextension.bkbcs.tencent.com/withdrawn"
