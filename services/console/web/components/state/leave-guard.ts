/** Asks before a page with unsaved edits, or with a secret that is shown once, is left. */
import { useBlocker } from '@tanstack/react-router'

/**
 * Filters, tabs and selections of the same page are changed without a question.
 * @param active while leaving would lose something
 */
export function useLeaveGuard(active: boolean, question: string): void {
  useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && !confirm(question),
    enableBeforeUnload: active,
    disabled: !active,
  })
}
