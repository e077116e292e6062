// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. `go run send_telemetry.go`
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func signBody(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func send(body []byte) (int, string, error) {
	// Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
	url := os.Getenv("INGEST_URL") + "/v1/rasp/ingest"
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Service-Signature", signBody(body, os.Getenv("HMAC_SECRET")))
	client := http.Client{Timeout: 15 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	status, text, err := send(body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status, text)
	if status != http.StatusOK {
		os.Exit(1)
	}
}
