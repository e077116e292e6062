/** Asks before a page with unsaved edits, or with a secret that is shown once, is left. */
import { useBlocker } from '@tanstack/react-router'

/** @param active while leaving would lose something */
export function useLeaveGuard(active: boolean, question: string): void {
  useBlocker({
    shouldBlockFn: () => !confirm(question),
    enableBeforeUnload: active,
    disabled: !active,
  })
}
