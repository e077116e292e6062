/** For an address that no page has. */
import { Link } from '@tanstack/react-router'
import { Page } from '../components/page.tsx'
import { Empty } from '../components/states.tsx'

export function NotFound() {
  return (
    <Page title="No such page">
      <Empty title="There is no page at this address">
        <p>The link may be old or not complete.</p>
        <Link to="/">Go to the start</Link>
      </Empty>
    </Page>
  )
}
