/** The frame of a page: its title with the one main action, and panels. */
import { useParams } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'

/** Names the window after the page, and after the tenant that the page is about. */
export function useTitle(title: string): void {
  const { tenant } = useParams({ strict: false })
  useEffect(() => {
    const parts = [
      title,
      ...(tenant === undefined || tenant === title ? [] : [tenant]),
      'Device intelligence',
    ]
    document.title = parts.join(' · ')
  }, [title, tenant])
}

export function Page({
  title,
  action,
  controls,
  children,
  about,
}: {
  title: string
  /** The page's one main action, beside its title. */
  action?: ReactNode
  /** Time range and live switch, at the right. */
  controls?: ReactNode
  about?: ReactNode
  children: ReactNode
}) {
  useTitle(title)
  return (
    <div className="grid w-full max-w-7xl grid-cols-[minmax(0,1fr)] content-start gap-4 p-4 sm:p-6">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="font-semibold text-xl">{title}</h1>
        {action}
        {controls && <div className="ml-auto flex flex-wrap items-center gap-2">{controls}</div>}
      </div>
      {about && <p className="-mt-2 max-w-2xl text-muted">{about}</p>}
      {children}
    </div>
  )
}

export function Panel({
  title,
  action,
  children,
}: {
  title?: string
  action?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="min-w-0 rounded-lg border border-line bg-raised">
      {title && (
        <div className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-line border-b px-4 py-1.5">
          <h2 className="font-semibold">{title}</h2>
          {action}
        </div>
      )}
      {children}
    </section>
  )
}

/** Names and values below each other. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[fit-content(40%)_1fr] gap-x-6 gap-y-2 px-4 py-3">
      {facts.map(([name, value]) => (
        <div className="contents" key={name}>
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
