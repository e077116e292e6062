/** Programs in nine languages that sign and send one submission of the tenant, and how to read it. */
import { useQuery } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { Input } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Tabs } from '../../components/tabs.tsx'
import { writeReading, writeSnippets, writeSubmission } from './snippets.ts'

const addressesQuery = {
  queryKey: ['addresses'],
  queryFn: () => ok(api.GET('/admin/v1/addresses')),
  staleTime: Number.POSITIVE_INFINITY,
}

export function SnippetsPanel({ tenantId }: { tenantId: string }) {
  const [address, setAddress] = useUrlState('ingest')
  const { data: own } = useQuery(addressesQuery)
  const body = writeSubmission(tenantId)
  const ingestUrl = toBase(address.trim() || own?.ingest_url)
  const apiUrl = toBase(own?.api_url)
  return (
    <Panel title="Send signed telemetry">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-3 p-4 pt-3">
        <p className="max-w-3xl text-muted">
          Each program sends a submission of {tenantId}, signs exactly the bytes that it sends, and
          prints the answer. It reads <code className="font-mono text-sm">HMAC_SECRET</code>
          {ingestUrl === '' && (
            <>
              {' '}
              and <code className="font-mono text-sm">INGEST_URL</code>
            </>
          )}{' '}
          from the environment. For Node.js there is{' '}
          <code className="font-mono text-sm">device-intelligence-client</code>, which also retries.
        </p>
        <div className="max-w-md">
          <Input
            hint="Filled into the programs. What you type stays in the address of this page."
            label="Address of ingest"
            mono
            onChange={({ target }) => setAddress(target.value)}
            placeholder={own?.ingest_url ?? 'https://ingest.example.com'}
            spellCheck={false}
            value={address}
          />
        </div>
        <Tabs
          name="language"
          tabs={writeSnippets({ body, ingestUrl }).map(({ id, language, code }) => ({
            id,
            label: language,
            content: <CodeBlock code={code} label={`Sending in ${language}`} />,
          }))}
        />
        <p className="max-w-3xl text-muted">
          Within a second its session is in the history of the device.{' '}
          <code className="font-mono text-sm">API_KEY</code> is the public API key
          {apiUrl === '' && (
            <>
              {' '}
              and <code className="font-mono text-sm">API_URL</code> the address of the REST API
            </>
          )}
          .
        </p>
        <CodeBlock code={writeReading(apiUrl)} label="Reading with curl" />
      </div>
    </Panel>
  )
}

/** An address without the slashes at its end. */
const toBase = (address: string | null | undefined): string => address?.replace(/\/+$/, '') ?? ''
