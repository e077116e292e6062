/** The operator's own account: who they are, and what they may do. */
import { Badge } from '../components/badge.tsx'
import { Facts, Page as Frame, Panel } from '../components/page.tsx'
import { useSignedIn } from '../shell/operator.ts'

export function Page() {
  const { operator } = useSignedIn()
  return (
    <Frame title="Account">
      <Panel title="You">
        <Facts
          facts={[
            ['Name', operator.name],
            ['E-mail', operator.email],
            ['Role', <Badge key="role">{operator.role}</Badge>],
            ['Tenants', operator.tenants === 'all' ? 'all' : operator.tenants.join(', ')],
          ]}
        />
      </Panel>
    </Frame>
  )
}
