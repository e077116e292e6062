/** Help: how to sign and verify, and the references of both APIs. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { flags } from '#shared/core/signals/flags.ts'
import { api, ok } from '../../api/client.ts'
import { useTenant } from '../../api/tenants.ts'
import { Input } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty, Loaded } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { type OpenapiDocument, Reference } from './reference.tsx'

export function Page() {
  return (
    <Frame title="Help">
      <Tabs
        tabs={[
          { id: 'signing', label: 'Signing', content: <Signing /> },
          { id: 'glossary', label: 'Glossary', content: <Glossary /> },
          { id: 'api', label: 'Ingest and REST API', content: <PublicReference /> },
          { id: 'admin', label: 'Admin API', content: <AdminReference /> },
        ]}
      />
    </Frame>
  )
}

/** What each flag means, under its name for people and its code. */
function Glossary() {
  const [text, setText] = useUrlState('flag')
  const wanted = text.toLowerCase()
  const shown = Object.entries(flags).filter(([code, { name, about }]) =>
    `${code} ${name} ${about}`.toLowerCase().includes(wanted),
  )
  return (
    <Panel>
      <div className="border-line border-b p-3">
        <Input
          label="Find a flag"
          onChange={({ target }) => setText(target.value)}
          placeholder="Name, code or meaning"
          type="search"
          value={text}
        />
      </div>
      {shown.length === 0 && <Empty title="No flag matches" />}
      <dl className="grid gap-x-6 gap-y-3 p-4 sm:grid-cols-[18rem_1fr]">
        {shown.map(([code, { name, about }]) => (
          <div className="contents" key={code}>
            <dt>
              {name} <span className="text-muted text-sm break-all">{code}</span>
            </dt>
            <dd className="max-w-3xl text-muted">{about}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  )
}

function PublicReference() {
  const document = useQuery({
    queryKey: ['public-api'],
    queryFn: async () => (await import('#api/openapi.json')).default as unknown as OpenapiDocument,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return <Loaded query={document}>{(data) => <Reference document={data} />}</Loaded>
}

function AdminReference() {
  const document = useQuery({
    queryKey: ['admin-api'],
    queryFn: async () => {
      const get = api.GET as unknown as (path: string) => Promise<{ response: Response }>
      return (await ok(get('/admin/v1/openapi.json'))) as unknown as OpenapiDocument
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
  return <Loaded query={document}>{(data) => <Reference document={data} />}</Loaded>
}

const signExample = `signature = base64( HMAC-SHA256(
  key = HMAC secret,
  message = body ) )

POST /v1/rasp/ingest
Content-Type: application/json
X-Service-Signature: <signature, 44 characters>

<body>`

const verifyExample = `X-Service-Signature = base64( HMAC-SHA256(
  key = webhook secret,
  message = body ) )

webhook-signature = "v1," + base64( HMAC-SHA256(
  key = base64-decoded part of the secret after "whsec_",
  message = webhook-id + "." + webhook-timestamp + "." + body ) )`

function Signing() {
  const tenant = useTenant()
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-2">
      <Panel title="Sign telemetry">
        <Text>
          <p>
            Serialize the submission once, sign those bytes, and send the same bytes. The key is the
            whole HMAC secret as text; do not decode it.
          </p>
          <CodeBlock code={signExample} label="Signing" />
          <ul className="grid list-disc gap-1 pl-5">
            <li>Standard base64 with its padding, not hex and not base64url.</li>
            <li>No newline after the body, none after the secret, no prefix, no quotes.</li>
            <li>
              Sending the same bytes again is safe: it raises no second alert and counts once.
            </li>
            <li>
              Every 401 says the form of the header, and the length and SHA-256 of the body as it
              came.
            </li>
          </ul>
          <p>
            {tenant !== null && (
              <>
                Programs in several languages are in{' '}
                <Link className="underline" params={{ tenant }} to="/manage/integrations/$tenant">
                  Integrations
                </Link>
                . When a signature is refused, the{' '}
                <Link
                  className="underline"
                  params={{ tenant }}
                  to="/manage/integrations/$tenant/signature"
                >
                  signature debugger
                </Link>{' '}
                says why.
              </>
            )}
          </p>
        </Text>
      </Panel>
      <Panel title="Verify webhooks">
        <Text>
          <p>
            Each delivery has two signatures; verify one of them over the raw body, in constant
            time, before anything else. The second also covers the id and the time.
          </p>
          <CodeBlock code={verifyExample} label="Verifying" />
          <ul className="grid list-disc gap-1 pl-5">
            <li>Answer 2xx within 15 s, before you process the alert.</li>
            <li>Keep the id: a delivery can arrive more than once and in any order.</li>
            <li>Answer 410 to switch the webhook off.</li>
          </ul>
          <p>
            {tenant !== null && (
              <>
                Receivers in six languages are in{' '}
                <Link
                  className="underline"
                  params={{ tenant }}
                  search={{ tab: 'receiver' }}
                  to="/t/$tenant/webhooks"
                >
                  Webhooks
                </Link>
                .
              </>
            )}
          </p>
        </Text>
      </Panel>
    </div>
  )
}

function Text({ children }: { children: ReactNode }) {
  return <div className="grid grid-cols-[minmax(0,1fr)] gap-3 p-4">{children}</div>
}
