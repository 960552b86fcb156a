package httpapi

import (
	_ "embed"
	"net/http"

	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var openAPIYAML []byte

// openAPI returns the served document.
func openAPI() []byte {
	out, err := yaml.YAMLToJSON(openAPIYAML)
	if err != nil {
		panic(err) // a test covers it
	}
	return out
}

func openAPIHandler() http.Handler {
	document := openAPI()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // the client may be gone
	})
}
