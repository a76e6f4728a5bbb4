// The icons, each a few strokes on a grid of 20. They carry no meaning alone: a text stands beside or in the label.

const PATHS = {
  chat: 'M3.5 5.5a2 2 0 0 1 2-2h9a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H9l-3.8 3v-3h.3a2 2 0 0 1-2-2z',
  inbox: 'M3.5 11 5.7 4.6a1.5 1.5 0 0 1 1.4-1.1h5.8a1.5 1.5 0 0 1 1.4 1.1L16.5 11v4a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 15zm0 0h3.7l1 2h3.6l1-2h3.7',
  organisation: 'M7.5 3.5h5v4h-5zM3 12.5h5v4H3zM12 12.5h5v4h-5zM10 7.5V10m-4.5 2.5V10h9v2.5',
  trace: 'M3.5 4.5h7M6.5 8.5h8M9.5 12.5h6M5.5 16.5h5',
  gallery: 'M3.5 3.5h5.5V9H3.5zM11 3.5h5.5V9H11zM3.5 11H9v5.5H3.5zM13.8 11v5.5M11 13.8h5.5',
  settings: 'M3.5 6h7m4 0h2m-13 8h2m4 0h7M12.5 4v4M7.5 12v4',
  send: 'M10 16V4.5m0 0L5 9.5m5-5 5 5',
  stop: 'M5.5 5.5h9v9h-9z',
  play: 'M6.5 4.5 15 10l-8.5 5.5z',
  pause: 'M7 4.5v11M13 4.5v11',
  plus: 'M10 4v12M4 10h12',
  close: 'm5 5 10 10M15 5 5 15',
  right: 'm7.5 4.5 5.5 5.5-5.5 5.5',
  left: 'M12.5 4.5 7 10l5.5 5.5',
  down: 'm4.5 7.5 5.5 5.5 5.5-5.5',
  up: 'm4.5 12.5 5.5-5.5 5.5 5.5',
  check: 'm4 10.5 4 4 8-9',
  cross: 'm5.5 5.5 9 9m0-9-9 9',
  dot: 'M10 7.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  ring: 'M10 4a6 6 0 1 0 0 12 6 6 0 0 0 0-12z',
  half: 'M10 4a6 6 0 1 0 0 12zM10 4a6 6 0 0 1 0 12',
  skip: 'M4 10h12',
  alert: 'M10 3 2.8 16h14.4zM10 8v3.5m0 2.2v.1',
  question: 'M7.3 7.4A2.8 2.8 0 0 1 10 5.2c1.6 0 2.8 1 2.8 2.5 0 2-2.8 2.3-2.8 4.2m0 2.6v.1',
  tool: 'M12.8 3.7a3.8 3.8 0 0 0-3.6 5.1l-5.5 5.5 2 2 5.5-5.5a3.8 3.8 0 0 0 5-4.6l-2.4 2.3-2-.5-.5-2 2.3-2.3z',
  think: 'M6 13.5a4.5 4.5 0 1 1 8 0c-.7.6-1.2 1.2-1.2 2H7.2c0-.8-.5-1.4-1.2-2zM8 17.5h4',
  branch: 'M6 3.5v13M6 12c0-3 8-2 8-6M14 3.5a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4z',
  retry: 'M15.5 8.5A6 6 0 1 0 16 11M15.8 4v4.5h-4.5',
  edit: 'm4 16 .8-3.2 8.4-8.4 2.4 2.4-8.4 8.4zM11.5 6 14 8.5',
  clip: 'm15.5 9-5.8 5.8a3.2 3.2 0 0 1-4.5-4.5l6-6a2.1 2.1 0 0 1 3 3l-5.8 5.8a1 1 0 0 1-1.5-1.4l5-5',
  file: 'M5.5 3.5h6l3 3v10h-9zM11.5 3.5v3h3',
  agent: 'M10 3.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM4 16.5c.6-3 3-4.5 6-4.5s5.4 1.5 6 4.5',
  arrow: 'M4 10h11m0 0-4-4m4 4-4 4',
  sun: 'M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2.5v1.8m0 11.4v1.8M2.5 10h1.8m11.4 0h1.8M4.7 4.7 6 6m8 8 1.3 1.3m0-10.6L14 6M6 14l-1.3 1.3',
  moon: 'M15.8 12A6.5 6.5 0 0 1 8 4.2a6.5 6.5 0 1 0 7.8 7.8z',
  system: 'M3.5 4.5h13v9h-13zM7.5 16.5h5',
  globe: 'M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM3.5 10h13M10 3.5c4 4 4 9 0 13-4-4-4-9 0-13z',
  search: 'M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zm3.6 8.6 3.4 3.4',
  copy: 'M7.5 7.5h8v8h-8zM5 12.5h-.5v-8h8V5',
  plan: 'm3.5 5.5 1.2 1.2L7 4.4M9.5 5.5h7m-13 5 1.2 1.2L7 9.4m2.5 1.1h7M9.5 15.5h7M4 15.5h2.5',
  clock: 'M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM10 6.5V10l2.5 1.5',
  trash: 'M4 6h12M8 6V4h4v2m-6.5 0 .7 10.5h7.6L14.5 6',
  more: 'M5 9.1a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8zM10 9.1a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8zM15 9.1a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8z',
  pin: 'M7 3.5h6l-1 5 3 3H5l3-3zM10 11.5v5',
  fit: 'M4 7.5V4h3.5M12.5 4H16v3.5M16 12.5V16h-3.5M7.5 16H4v-3.5',
  panel: 'M3.5 4.5h13v11h-13zM12 4.5v11',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
