/** Whether a second factor is required: of all operators, or of those who may see a tenant. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Loaded, Refused, SkeletonRows } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast } from '../../components/toast.tsx'
import { useMay, useSignedIn } from '../../shell/operator.ts'

type Rule = AnswerOf<'/admin/v1/second-factor', 'get'>

/** Null for the rule of all operators. */
type RuleOf = string | null

const ruleQuery = (tenant: RuleOf) => ({
  queryKey: ['second-factor', tenant],
  queryFn: (): Promise<Rule> =>
    tenant === null
      ? ok(api.GET('/admin/v1/second-factor', { params: {} }))
      : ok(
          api.GET('/admin/v1/tenants/{tenant_id}/second-factor', {
            params: { path: { tenant_id: tenant } },
          }),
        ),
})

const nameCovered = (tenant: RuleOf): string =>
  tenant === null
    ? 'all operators'
    : `everyone who may see ${tenant}, operators of all tenants included`

export function SecondFactorRulePanel({ tenant }: { tenant: RuleOf }) {
  const rule = useQuery(ruleQuery(tenant))
  const mayChange = useMay('admin')
  const [open, setOpen] = useState(false)
  const action = mayChange && rule.data && (
    <Button onClick={() => setOpen(true)} small>
      {rule.data.required ? 'Stop requiring it' : 'Require it'}
    </Button>
  )
  return (
    <Panel action={action} title="Second factor">
      <Loaded query={rule} skeleton={<SkeletonRows rows={2} />}>
        {({ required, since, required_of_all: ofAll }) => (
          <Facts
            facts={[
              [
                'State',
                <span key="state">
                  <Badge tone={required ? 'good' : 'neutral'}>
                    {required ? 'required' : 'not required'}
                  </Badge>
                  {since !== null && (
                    <span className="text-muted">
                      {' '}
                      since <Time at={since} />
                    </span>
                  )}
                </span>,
              ],
              ['Covers', toCoverage(tenant, { required, ofAll })],
            ]}
          />
        )}
      </Loaded>
      {!mayChange && (
        <p className="px-4 pb-3 text-muted text-sm">An administrator can change this.</p>
      )}
      {open && rule.data && (
        <RuleDialog onClose={() => setOpen(false)} required={!rule.data.required} tenant={tenant} />
      )}
    </Panel>
  )
}

function toCoverage(tenant: RuleOf, rule: { required: boolean; ofAll: boolean }): string {
  if (rule.required) return `${nameCovered(tenant)}; single sign-on is exempt`
  if (rule.ofAll) return 'nobody by this rule: it is required of all operators of the console'
  return 'nobody: a password is enough to sign in'
}

function RuleDialog({
  tenant,
  required,
  onClose,
}: {
  tenant: RuleOf
  /** What it is to become. */
  required: boolean
  onClose: () => void
}) {
  const client = useQueryClient()
  const { operator, session } = useSignedIn()
  const lacksOwn = required && !operator.totp && session.signed_in_by !== 'oidc'
  const save = useMutation({
    mutationFn: () =>
      tenant === null
        ? ok(api.PUT('/admin/v1/second-factor', { params: {}, body: { required } }))
        : ok(
            api.PUT('/admin/v1/tenants/{tenant_id}/second-factor', {
              params: { path: { tenant_id: tenant } },
              body: { required },
            }),
          ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['second-factor'] })
      void client.invalidateQueries({ queryKey: sessionQuery.queryKey })
      toast(
        `A second factor is ${required ? 'required' : 'not required any more'} of ${nameCovered(tenant)}.`,
      )
      onClose()
    },
  })
  return (
    <Dialog
      description={
        required
          ? `Of ${nameCovered(tenant)}. Whoever has none sets it up at the next sign-in, and can do nothing else before. Sessions that are open go on until their end, 12 hours at most. Single sign-on is exempt: the identity provider asks for it.`
          : 'A password alone is enough to sign in again, unless another rule covers the operator.'
      }
      locked={save.isPending}
      onClose={onClose}
      open
      title={required ? 'Require a second factor' : 'Stop requiring a second factor'}
    >
      {lacksOwn && (
        <p className="rounded-md bg-warn-soft px-3 py-2 text-warn">
          Set up your own first, on the page{' '}
          <Link className="underline!" to="/account">
            Account
          </Link>
          : who requires it has one.
        </p>
      )}
      <Refused error={save.error} />
      <DialogActions>
        <Button disabled={save.isPending} onClick={onClose}>
          Cancel
        </Button>
        <Button
          busy={save.isPending}
          disabled={lacksOwn}
          look={required ? 'primary' : 'danger'}
          onClick={() => save.mutate()}
        >
          {required ? 'Require it' : 'Stop requiring it'}
        </Button>
      </DialogActions>
    </Dialog>
  )
}
