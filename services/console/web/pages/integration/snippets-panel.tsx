/** Programs in nine languages that sign and send one submission of the tenant. */
import { Input } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useUrlState } from '../../components/url-state.ts'
import { writeSnippets, writeSubmission } from './snippets.ts'

export function SnippetsPanel({ tenantId }: { tenantId: string }) {
  const [address, setAddress] = useUrlState('ingest')
  const body = writeSubmission(tenantId)
  const ingestUrl = address.trim().replace(/\/+$/, '')
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
          <code className="font-mono text-sm">device-intelligence/client</code>, which also retries.
        </p>
        <div className="max-w-md">
          <Input
            hint="Filled into the programs; it stays in the address of this page."
            label="Address of ingest"
            mono
            onChange={({ target }) => setAddress(target.value)}
            placeholder="https://ingest.example.com"
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
      </div>
    </Panel>
  )
}
