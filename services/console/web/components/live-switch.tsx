/** Switches a page between live and still, in its URL; live is usual. */
import { classes } from './classes.ts'
import { useUrlState } from './state/url-state.ts'

export function useLive(): boolean {
  return useUrlState('live', 'on')[0] === 'on'
}

/** @param connected false while the connection is lost; the page then says so */
export function LiveSwitch({ connected = true }: { connected?: boolean }) {
  const [live, setLive] = useUrlState('live', 'on')
  const on = live === 'on'
  return (
    <button
      aria-checked={on}
      className="inline-flex h-8 items-center gap-2 rounded-md border border-line-strong bg-raised px-2.5 hover:bg-hover"
      onClick={() => setLive(on ? 'off' : 'on')}
      role="switch"
      type="button"
    >
      <span
        aria-hidden="true"
        className={classes(
          'size-2 rounded-full',
          on && connected ? 'bg-good' : on ? 'bg-warn' : 'border border-muted',
        )}
      />
      {on && !connected ? 'Connecting' : 'Live'}
    </button>
  )
}
