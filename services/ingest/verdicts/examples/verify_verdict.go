// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs golang-jwt and keyfunc.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

func verifyVerdict(keys keyfunc.Keyfunc, token, tenant, audience, nonce string) (jwt.MapClaims, error) {
	verdict := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(token, verdict, keys.Keyfunc, jwt.WithValidMethods([]string{"ES256"}),
		jwt.WithAudience(tenant), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(time.Minute))
	if err == nil && (verdict["purpose"] != audience || verdict["nonce"] != nonce) {
		err = errors.New("it answers another question")
	}
	return verdict, err
}

func main() {
	keys, err := keyfunc.NewDefault([]string{os.Getenv("KEYS_URL")}) // one for the process
	if err != nil {
		log.Fatal(err)
	}
	token, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	verdict, err := verifyVerdict(keys, strings.TrimSpace(string(token)),
		os.Getenv("TENANT"), os.Getenv("AUDIENCE"), os.Getenv("NONCE"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verdict)
}
