package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BCSNetHistory is one part of the history: who held addresses until when, what was done to addresses by hand, and
// what changed in pools. The leader of the controller writes it; parts are added and go by age, and no record in one
// changes. Nothing decides by it. Its name begins with the time of its first record, so names sort by time.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bcsnethistories,scope=Cluster,shortName=bnh
// +kubebuilder:printcolumn:name=Since,type=string,JSONPath=`.since`
// +kubebuilder:printcolumn:name=Until,type=string,JSONPath=`.until`
// +kubebuilder:printcolumn:name=Records,type=integer,JSONPath=`.records`
// +kubebuilder:validation:XValidation:rule=`self.since == oldSelf.since && self.records >= oldSelf.records`,message=`a part of the history only grows: its beginning stays, and no record goes`
type BCSNetHistory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// since is the time of the first record, RFC 3339, by the clock of the API server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Since string `json:"since"`
	// until is the time of the last record, RFC 3339.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Until string `json:"until"`
	// version is the resourceVersion up to which all changes of addresses are recorded: in this part or an earlier one.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	Version string `json:"version,omitempty"`
	// records counts the records in data.
	// +kubebuilder:validation:Minimum=0
	Records int32 `json:"records"`
	// data has the records: JSON, one a line, compressed by gzip.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	Data []byte `json:"data,omitempty"`
}

// BCSNetHistoryList is a list of parts of the history.
//
// +kubebuilder:object:root=true
type BCSNetHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BCSNetHistory `json:"items"`
}
