/** The progress of work that goes on while other pages are open. */

/** @param share from 0 to 1 */
export function Progress({ noun, share, text }: { noun: string; share: number; text: string }) {
  return (
    <div className="grid gap-2 p-4" role="status">
      <div
        aria-label={`Progress of the ${noun}`}
        aria-valuemax={100}
        aria-valuemin={0}
        aria-valuenow={Math.round(share * 100)}
        className="h-2 overflow-hidden rounded bg-hover"
        role="progressbar"
      >
        <div className="h-full bg-accent transition-[width]" style={{ width: `${share * 100}%` }} />
      </div>
      <p className="text-muted">
        {text} You may leave this page: the {noun} goes on and its report is here when you return.
      </p>
    </div>
  )
}
