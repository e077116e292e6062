// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"os"
)

// isGenuine compares in constant time. rawBody is io.ReadAll(request.Body), before any decoder.
func isGenuine(rawBody []byte, signature, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(rawBody)
	expected := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	if !isGenuine(body, os.Args[1], os.Getenv("WEBHOOK_SECRET")) {
		fmt.Println("forged")
		os.Exit(1)
	}
	fmt.Println("genuine")
}
