package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := `{"tenant_id":"TENANT","device_id":"device-1","session_id":"session-1","sdk_meta":{"sdk_version":"1.0.0","platform":"android","batch_type":"start"},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},"signals":{"root":{},"emulator":{},"debugger":{},"tamper":{},"ecosystem":{},"network":{}}}`
	mac := hmac.New(sha256.New, []byte(os.Getenv("HMAC_SECRET")))
	mac.Write([]byte(body))
	request, err := http.NewRequest("POST", os.Getenv("INGEST_URL")+"/v1/rasp/ingest", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-service-signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, string(answer))
}
