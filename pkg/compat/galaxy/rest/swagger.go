package rest

import (
	_ "embed"
	"encoding/json"
)

// Paths of galaxy's Swagger documents.
const (
	SwaggerList = "/apidocs.json"
	SwaggerV1   = "/apidocs.json/v1"
)

//go:embed swagger.json
var swaggerV1 []byte

// SwaggerDocuments returns, for a server at a URL, the list of APIs and the description of its only API, in Swagger
// 1.2.
func SwaggerDocuments(base string) (list, v1 any) {
	doc := map[string]any{}
	if err := json.Unmarshal(swaggerV1, &doc); err != nil {
		panic(err) // a test covers it
	}
	doc["basePath"] = base
	return map[string]any{
		"swaggerVersion": doc["swaggerVersion"], "apiVersion": doc["apiVersion"], "info": doc["info"],
		"apis": []map[string]any{{"path": "/v1", "description": ""}},
	}, doc
}
