/** Whether a tenant wants four eyes, and from how many alerts on; administrators change it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Checkbox, Input } from '../../components/field.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { fourEyesQuery, useFourEyes } from './proposals.ts'
import { Propose } from './propose.tsx'

type Setting = { enabled: boolean; bulk_above: number }

export function FourEyesPanel({ tenant }: { tenant: string }) {
  const setting = useFourEyes(tenant)
  const may = useMay('admin')
  const [open, setOpen] = useState(false)
  if (setting === undefined) return null
  const { enabled, bulk_above: above } = setting
  return (
    <Panel action={may && <Button onClick={() => setOpen(true)}>Change</Button>} title="Four eyes">
      <Facts
        facts={[
          [
            'State',
            <Badge key="state" tone={enabled ? 'good' : 'neutral'}>
              {enabled ? 'on' : 'off'}
            </Badge>,
          ],
          [
            'Asked for',
            enabled
              ? `publishing a policy, rotating keys, erasures, and bulk changes of more than ${above.toLocaleString('en')} alerts`
              : 'nothing: one administrator is enough',
          ],
        ]}
      />
      {open && <ChangeDialog onClose={() => setOpen(false)} setting={setting} tenant={tenant} />}
    </Panel>
  )
}

function ChangeDialog({
  tenant,
  setting: { enabled, bulk_above: above },
  onClose,
}: {
  tenant: string
  setting: Setting
  onClose: () => void
}) {
  const [next, setNext] = useState<Setting>({ enabled, bulk_above: above })
  const client = useQueryClient()
  const save = useMutation({
    mutationFn: () =>
      ok(
        api.PUT('/admin/v1/tenants/{tenant_id}/four-eyes', {
          params: { path: { tenant_id: tenant } },
          body: next,
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries(fourEyesQuery(tenant))
      onClose()
      toast(next.enabled ? 'Four eyes are on.' : 'Four eyes are off.')
    },
  })
  const isSame = next.enabled === enabled && next.bulk_above === above
  return (
    <Dialog
      description="What one administrator proposes, another one approves. While it is on, this setting needs an approval, too."
      locked={save.isPending}
      onClose={onClose}
      open
      title="Four eyes"
    >
      <Checkbox
        checked={next.enabled}
        label="Ask a second administrator"
        onChange={({ target }) => setNext({ ...next, enabled: target.checked })}
      />
      <Input
        hint="Bulk changes of up to so many alerts need no approval."
        label="Alerts of a bulk change"
        min={0}
        onChange={({ target }) => setNext({ ...next, bulk_above: Number(target.value) })}
        type="number"
        value={next.bulk_above}
      />
      <Propose
        body={{ kind: 'four_eyes', setting: next }}
        disabled={isSame}
        error={save.error}
        isNeeded={enabled}
        onCancel={onClose}
        pending={save.isPending}
        tenant={tenant}
      >
        <Button
          busy={save.isPending}
          disabled={isSame}
          look="primary"
          onClick={() => save.mutate()}
        >
          Save
        </Button>
      </Propose>
    </Dialog>
  )
}
