/** The icons: 16 px lines in the colour of the text, hidden from screen readers. */

const shapes = {
  overview: 'M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z',
  cases: 'M2 5.5h12v8h-12zM5.5 5.5v-2.5h5v2.5M2 9h12',
  alerts: 'M8 2.2l6 10.8h-12zM8 6.5v3M8 11.2v.1',
  events: 'M2.5 4h.1M2.5 8h.1M2.5 12h.1M5.5 4h8M5.5 8h8M5.5 12h8',
  policies: 'M3 4h6M12 4h1M3 8h1M7 8h6M3 12h5M11 12h2M10.5 2.5v3M5.5 6.5v3M9.5 10.5v3',
  signals: 'M2 9.5h2.5l2-6 3 9 2-5h2.5',
  lists: 'M2.5 4l1.5 1.5 2.5-3M2.5 10l1.5 1.5 2.5-3M9 4h4.5M9 10h4.5',
  fleet: 'M2.5 13.5v-4M6.2 13.5v-8M9.8 13.5v-6M13.5 13.5v-11',
  webhooks: 'M6 10.5l-2.5 0M10 5.5l2.5 0M5 3h-2v10h2M11 3h2v10h-2M6 8h4M8.5 6.5l1.5 1.5-1.5 1.5',
  explore: 'M3 4l3.5 4-3.5 4M8 12.5h5',
  reconciliation: 'M2.5 5h9M9 2.5l2.5 2.5-2.5 2.5M13.5 11h-9M7 8.5l-2.5 2.5 2.5 2.5',
  admin: 'M8 1.8l5 2v4c0 3.2-2.1 5.4-5 6.4-2.9-1-5-3.2-5-6.4v-4z',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3',
  help: 'M8 1.8a6.2 6.2 0 1 0 0 12.4 6.2 6.2 0 0 0 0-12.4zM6.2 6.2a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.6-.8 1.2M8 11.2v.1',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5l3.2 3.2 6.8-7.2',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  more: 'M3.5 8h.1M8 8h.1M12.5 8h.1',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  plus: 'M8 3v10M3 8h10',
  person:
    'M8 2.5a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM2.8 14c.4-2.8 2.5-4.2 5.2-4.2s4.8 1.4 5.2 4.2',
  key: 'M10.5 2.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8.3 7.7l-5.8 5.8M4.5 11.5l1.5 1.5',
  refresh: 'M13.2 8a5.2 5.2 0 1 1-1.6-3.7M13.5 2.5v2.5h-2.5',
  warning: 'M8 2.2l6 10.8h-12zM8 6.5v3M8 11.2v.1',
} as const

export type IconName = keyof typeof shapes

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      className="shrink-0"
      fill="none"
      height={size}
      stroke="currentColor"
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeWidth={1.4}
      viewBox="0 0 16 16"
      width={size}
    >
      <path d={shapes[name]} />
    </svg>
  )
}
