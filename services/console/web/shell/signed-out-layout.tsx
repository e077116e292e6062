/** The frame of the pages that need no session, and the mark of the product. */
import { type ReactNode, useEffect } from 'react'

export function SignedOutLayout({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Device intelligence`
  }, [title])
  return (
    <main className="grid min-h-full place-items-center bg-panel p-4">
      <div className="grid w-full max-w-sm gap-5">
        <div className="flex items-center gap-2.5">
          <Mark />
          <span className="font-semibold text-lg">Device intelligence</span>
        </div>
        <div className="grid gap-4 rounded-xl border border-line bg-raised p-6 shadow-sm">
          <h1 className="font-semibold text-xl">{title}</h1>
          {children}
        </div>
      </div>
    </main>
  )
}

function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg aria-hidden="true" className="shrink-0" height={size} viewBox="0 0 32 32" width={size}>
      <rect className="fill-accent" height="32" rx="8" width="32" />
      <g fill="none" stroke="#fff" strokeLinecap="round" strokeLinejoin="round" strokeWidth="2.2">
        <path d="M16 6l8 3v6c0 5.5-3.4 9.2-8 11-4.6-1.8-8-5.5-8-11V9z" />
        <path d="M12.5 15.8l2.6 2.6 4.6-4.8" />
      </g>
    </svg>
  )
}
