/** How alerts of a tenant fall into cases, and until when each is due. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { dueHoursMax, reopenDaysMax } from '#shared/core/base/limits/alerts.ts'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Input, Select } from '../../components/field.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Loaded, Refused, SkeletonRows } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { counted } from '../../components/words.ts'
import { useMay } from '../../shell/operator.ts'
import { type CaseRules, caseRulesQuery, setCaseRules } from './rules.ts'

const groups: Readonly<Record<CaseRules['group_by'], string>> = {
  phone: 'The phone, else the device',
  device: 'The device',
  user: 'The user, else the device',
}

export function CaseRulesPanel({ tenant }: { tenant: string }) {
  const rules = useQuery(caseRulesQuery(tenant))
  const mayChange = useMay('admin')
  return (
    <Panel title="Cases">
      <Loaded query={rules} skeleton={<SkeletonRows rows={4} />}>
        {(present) =>
          mayChange ? <RulesForm present={present} tenant={tenant} /> : <Shown rules={present} />
        }
      </Loaded>
    </Panel>
  )
}

const Shown = ({ rules }: { rules: CaseRules }) => (
  <Facts
    facts={[
      ['A case is of', groups[rules.group_by]],
      ['Opened again within', counted(rules.reopen_days, 'day')],
      ['BLOCK is due after', counted(rules.block_due_hours, 'hour')],
      ['REVIEW is due after', counted(rules.review_due_hours, 'hour')],
    ]}
  />
)

const numbers = [
  {
    name: 'reopen_days',
    label: 'Opened again within days',
    hint: 'A new alert opens a closed case again; later a new case begins. 0 for never.',
    min: 0,
    max: reopenDaysMax,
  },
  {
    name: 'block_due_hours',
    label: 'BLOCK is due after hours',
    hint: 'From each alert that is open.',
    min: 1,
    max: dueHoursMax,
  },
  {
    name: 'review_due_hours',
    label: 'REVIEW is due after hours',
    hint: 'From each alert that is open.',
    min: 1,
    max: dueHoursMax,
  },
] as const

function RulesForm({ tenant, present }: { tenant: string; present: CaseRules }) {
  const client = useQueryClient()
  const [group, setGroup] = useState(present.group_by)
  const [texts, setTexts] = useState({
    reopen_days: String(present.reopen_days),
    block_due_hours: String(present.block_due_hours),
    review_due_hours: String(present.review_due_hours),
  })
  const save = useMutation({
    mutationFn: () =>
      setCaseRules(tenant, {
        group_by: group,
        reopen_days: Number(texts.reopen_days),
        block_due_hours: Number(texts.block_due_hours),
        review_due_hours: Number(texts.review_due_hours),
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: caseRulesQuery(tenant).queryKey })
      toast(`Alerts of ${tenant} fall into cases by the new rules from now on.`)
    },
  })
  const problem = save.error instanceof ApiProblem ? save.error : null
  const isSame =
    group === present.group_by && numbers.every(({ name }) => texts[name] === String(present[name]))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form className="grid gap-3 p-4" onSubmit={submit}>
      <p className="text-muted">
        Alerts of one subject are settled together. New rules are for alerts to come; cases that are
        there stay. When an install is corrected to another phone, its alerts in the open case of
        the phone it leaves follow it.
      </p>
      <Select
        error={problem?.of('group_by')}
        label="A case is of"
        onChange={({ target }) => setGroup(target.value as CaseRules['group_by'])}
        value={group}
      >
        {Object.entries(groups).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </Select>
      {numbers.map(({ name, label, hint, min, max }) => (
        <Input
          error={problem?.of(name)}
          hint={hint}
          inputMode="numeric"
          key={name}
          label={label}
          max={max}
          min={min}
          onChange={({ target }) => setTexts({ ...texts, [name]: target.value })}
          required
          step={1}
          type="number"
          value={texts[name]}
        />
      ))}
      {(problem === null || problem.errors.length === 0) && <Refused error={save.error} />}
      <div>
        <Button busy={save.isPending} disabled={isSame} type="submit">
          Save
        </Button>
      </div>
    </form>
  )
}
