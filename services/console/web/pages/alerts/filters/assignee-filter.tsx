/** A filter by who has an alert: anyone, me or no operator; a link may name another operator. */
import { unassigned } from '#shared/core/alerts/alert-filters.ts'
import { Button } from '../../../components/button.tsx'
import { classes } from '../../../components/classes.ts'
import { Icon } from '../../../components/icons.tsx'
import { Menu, MenuChoice } from '../../../components/menu.tsx'
import { useUrlState } from '../../../components/state/url-state.ts'
import { useSignedIn } from '../../../shell/operator.ts'

export function AssigneeFilter() {
  const { operator } = useSignedIn()
  const [assignee, setAssignee] = useUrlState('assignee')
  const choices: [value: string, text: string][] = [
    ['', 'Anyone'],
    [operator.email, 'Me'],
    [unassigned, 'Unassigned'],
  ]
  const text = choices.find(([value]) => value === assignee)?.[1] ?? assignee
  return (
    <Menu
      align="start"
      trigger={
        <Button className={classes(assignee !== '' && 'border-accent!')}>
          <span className="font-normal text-muted">Assignee</span>
          {assignee !== '' && <span className="max-w-40 truncate">{text}</span>}
          <Icon name="down" size={12} />
        </Button>
      }
    >
      <MenuChoice choices={choices} label="Assignee" onChoose={setAssignee} value={assignee} />
    </Menu>
  )
}
