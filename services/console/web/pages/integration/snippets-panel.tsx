/** Programs that sign and send one submission, with the tenant's values in place. */
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { writeSnippets } from './snippets.ts'

export function SnippetsPanel({ tenantId }: { tenantId: string }) {
  return (
    <Panel title="Send signed telemetry">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-2 p-4 pt-2">
        <p className="text-muted">
          Each reads <code className="font-mono text-sm">INGEST_URL</code> and{' '}
          <code className="font-mono text-sm">HMAC_SECRET</code> from the environment, signs exactly
          the bytes that it sends, and prints the answer.
        </p>
        <Tabs
          name="language"
          tabs={writeSnippets(tenantId).map(({ id, language, code }) => ({
            id,
            label: language,
            content: <CodeBlock code={code} label={`Sending in ${language}`} />,
          }))}
        />
      </div>
    </Panel>
  )
}
