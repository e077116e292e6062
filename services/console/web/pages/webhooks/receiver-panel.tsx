/** A receiver in six languages, with the tenant's values in place. */
import type { Tenant } from '../../api/tenants.ts'
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { writeReceivers } from './receivers.ts'

export function ReceiverPanel({ tenant }: { tenant: Tenant }) {
  return (
    <Panel title="Receive and verify">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-3 p-4 pt-3">
        <p className="max-w-3xl text-muted">
          Each program reads the secret from <Code>WEBHOOK_SECRET</Code>, verifies{' '}
          <Code>webhook-signature</Code> over the id, the time and the raw body, refuses what is
          older than five minutes, and answers before it works. A delivery can arrive more than
          once: keep its id.
        </p>
        <Tabs
          name="language"
          tabs={writeReceivers(tenant.tenant_id, tenant.webhook_url).map(
            ({ id, language, code }) => ({
              id,
              label: language,
              content: <CodeBlock code={code} label={`Receiver in ${language}`} />,
            }),
          )}
        />
      </div>
    </Panel>
  )
}

function Code({ children }: { children: string }) {
  return <code className="font-mono text-sm">{children}</code>
}
