/** What the clients of a tenant are answered: everything, or the score and the action alone. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { type Tenant, tenantQuery, tenantsQuery } from '../../api/tenants.ts'
import { Select } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'

type Answer = Tenant['ingest_answer']

const texts: Record<Answer, string> = {
  full: 'Score, action, event id and flags',
  interface: 'Score, action and event id alone',
}

export function IngestAnswerPanel({ tenant }: { tenant: Tenant }) {
  const { tenant_id: tenantId, ingest_answer: answer } = tenant
  const client = useQueryClient()
  const mayChange = useMay('engineer')
  const save = useMutation({
    mutationFn: (wanted: Answer) =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/ingest-answer', {
          params: { path: { tenant_id: tenantId } },
          body: { ingest_answer: wanted },
        }),
      ),
    onSuccess: async (_, wanted) => {
      await Promise.all(
        [tenantQuery(tenantId).queryKey, tenantsQuery.queryKey].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      )
      toast(`Clients of ${tenantId} now get: ${texts[wanted].toLowerCase()}.`)
    },
  })
  return (
    <Panel title="Answers to clients">
      <div className="grid gap-3 p-4">
        <p className="text-muted">
          A phone that learns its flags learns what to hide. Without them a support desk finds the
          event by its id.
        </p>
        {mayChange ? (
          <Select
            disabled={save.isPending}
            label="A 200 of ingest has"
            onChange={({ target }) => save.mutate(target.value as Answer)}
            value={answer}
          >
            {Object.entries(texts).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </Select>
        ) : (
          <p>{texts[answer]}</p>
        )}
        <Refused error={save.error} />
      </div>
    </Panel>
  )
}
