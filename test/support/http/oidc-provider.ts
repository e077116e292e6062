// An identity provider for tests: `oidc-provider` on 127.0.0.1, whose sign-in page signs in the
// person chosen by the test.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

/** Some providers write `email_verified` as a text. */
export type Identity = { sub: string; email?: string; email_verified?: boolean | string }
type Claims = Record<string, unknown>

export type TestProvider = {
  issuer: string
  clientId: string
  clientSecret: string
  /** The next person to sign in, and the age of that sign-in; null: the person cancels. */
  person: { identity: Identity; signedInSecondsAgo?: number } | null
  /** Changes the claims of the next signed answers, as other providers write them. */
  claims: (claims: Claims) => Claims
  /** Requests that have come so far, by path. */
  requests: string[]
  /** Stops the server; `start` restarts it at the same address. */
  stop: () => Promise<void>
  start: () => Promise<void>
}

/**
 * Starts a provider with one client.
 * @param options.redirectUri the return address
 * @param options.inToken whether the signed answer has the email; else it is at the userinfo
 * endpoint
 */
export async function startProvider({
  redirectUri,
  inToken = false,
}: {
  redirectUri: string
  inToken?: boolean
}): Promise<TestProvider> {
  const clientId = 'console'
  const clientSecret = randomBytes(24).toString('base64url')
  const identities = new Map<string, Identity>()
  const requests: string[] = []
  let port = 0
  let server: Server
  let handle: Parameters<typeof createServer>[1]
  const start = async () => {
    server = createServer((request, response) => handle?.(request, response))
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }
  await start()
  const issuer = `http://127.0.0.1:${port}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const key = privateKey.export({ format: 'jwk' })
  const provider: Provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: !inToken,
    cookies: { keys: [randomBytes(16).toString('hex')] },
    jwks: { keys: [{ ...key, alg: 'RS256', use: 'sig' }] },
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => identities.get(id) ?? { sub: id } }),
    // The console is the provider's own client, so there is no consent page.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      })
      grant.addOIDCScope('openid email')
      await grant.save()
      return grant
    },
  })
  const test: TestProvider = {
    issuer,
    clientId,
    clientSecret,
    person: null,
    claims: (claims) => claims,
    requests,
    start,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const answer = provider.callback()
  handle = (request, response) => {
    const path = new URL(request.url ?? '', issuer).pathname
    requests.push(path)
    if (path === '/token') {
      rewriteToken(response, (token) => {
        const [head = '', body = ''] = token.split('.')
        const claims = test.claims(JSON.parse(Buffer.from(body, 'base64url').toString()) as Claims)
        const signed = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
        const signature = sign('sha256', Buffer.from(signed), privateKey).toString('base64url')
        return `${signed}.${signature}`
      })
    }
    if (!path.startsWith('/interaction/')) return void answer(request, response)
    const { person } = test
    if (person !== null) identities.set(person.identity.sub, person.identity)
    const ts = Math.floor(Date.now() / 1_000) - (person?.signedInSecondsAgo ?? 0)
    const result =
      person === null
        ? { error: 'access_denied' }
        : { login: { accountId: person.identity.sub, ts, remember: false } }
    provider
      .interactionFinished(request, response, result)
      .catch((error) => response.writeHead(500).end(String(error)))
  }
  return test
}

/** Replaces the signed answer in a response that is about to be sent. */
function rewriteToken(response: ServerResponse, rewrite: (token: string) => string): void {
  const end = response.end.bind(response) as (text: string) => ServerResponse
  response.end = ((sent: string | Buffer) => {
    const body = JSON.parse(String(sent)) as { id_token?: string }
    if (body.id_token !== undefined) body.id_token = rewrite(body.id_token)
    const text = JSON.stringify(body)
    response.setHeader('content-length', Buffer.byteLength(text))
    return end(text)
  }) as ServerResponse['end']
}

/**
 * Follows the provider's pages as a browser does.
 * @returns the query of the return to the console
 */
export async function visitProvider(url: string, redirectUri: string): Promise<string> {
  const cookies = new Map<string, string>()
  for (let at = url, hops = 0; hops < 10; hops++) {
    if (at.startsWith(redirectUri)) return new URL(at).search
    const answer = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const [name = '', ...value] = pair.split('=')
      cookies.set(name, value.join('='))
    }
    const next = answer.headers.get('location')
    if (next === null) throw new Error(`${at} answered ${answer.status}: ${await answer.text()}`)
    at = new URL(next, at).href
  }
  throw new Error('the provider goes in circles')
}
