import type { JSX } from 'preact';

const shapes = {
  now: <path d="M8 1.8v6.2l4 2.4M8 14.2A6.2 6.2 0 1 1 14.2 8" />,
  plus: <path d="M8 3v10M3 8h10" />,
  overview: <path d="M2.5 2.5h4.5v6H2.5zM9 2.5h4.5v3H9zM9 7.5h4.5v6H9zM2.5 10.5h4.5v3H2.5z" />,
  sessions: <path d="M2.5 3h11v7.5H7l-3 2.7v-2.7H2.5zM5 5.7h6M5 7.9h4" />,
  chat: <path d="M2 2.5h9v6H6l-2.5 2v-2H2zM6.5 10.5h3l2.5 2v-2h2V6" />,
  actors: (
    <>
      <circle cx="8" cy="3.5" r="1.8" />
      <circle cx="3.5" cy="12" r="1.8" />
      <circle cx="12.5" cy="12" r="1.8" />
      <path d="M8 5.3v2.9M3.5 10.2V8.2h9v2" />
    </>
  ),
  automations: (
    <>
      <circle cx="8" cy="8.5" r="5.2" />
      <path d="M8 5.6v3l2 1.4M6.3 1.5h3.4" />
    </>
  ),
  settings: <path d="M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 2.8v3.4M5.5 9.8v3.4" />,
  events: <path d="M1.5 8.5h3l1.8-5 3 9 1.9-5.5.8 1.5h2.5" />,
  inbox: <path d="M2.5 9.5 4.5 3h7l2 6.5v3.5h-11zM2.5 9.5h3l1 2h3l1-2h3" />,
  threads: <path d="M2.5 2.5h8v5.5H6L4 10v-2H2.5zM13.5 5.5V11H12v2l-2-2H7.5" />,
  logs: <path d="M3 2h7l3 3v9H3zM5.5 7.5h5M5.5 10.5h5M10 2v3h3" />,
  queue: <path d="M2.5 3.5h2M7 3.5h6.5M2.5 8h2M7 8h6.5M2.5 12.5h2M7 12.5h6.5" />,
  deliveries: <path d="M2.5 9.5 4.3 3h7.4l1.8 6.5v3.5h-11zM2.5 9.5h3.2l1 1.7h2.6l1-1.7h3.2" />,
  sources: (
    <>
      <circle cx="4.5" cy="3.5" r="1.8" />
      <circle cx="4.5" cy="12.5" r="1.8" />
      <circle cx="11.5" cy="6" r="1.8" />
      <path d="M4.5 5.3v5.4M11.5 7.8c0 2.4-2 2.4-4.4 2.7-1.7.2-2.6.6-2.6.6" />
    </>
  ),
  pencil: <path d="m3 10.5-.6 3.1 3.1-.6 7.7-7.7-2.5-2.5zM9.3 4.2l2.5 2.5" />,
  box: <path d="M2 2.5h12v3H2zM3 5.5v8h10v-8M6.5 8h3" />,
  copy: <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />,
  done: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  close: <path d="m4 4 8 8m0-8-8 8" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.3" />
      <path d="m10.3 10.3 3.4 3.4" />
    </>
  ),
  play: <path d="M4.5 3v10l8-5z" />,
  pause: <path d="M5 3v10M11 3v10" />,
  refresh: <path d="M13 8a5 5 0 1 1-1.5-3.6M13 1.8v3h-3" />,
  down: <path d="M8 3v9M4.2 8.4 8 12.2l3.8-3.8" />,
  save: <path d="M8 2v8M4.8 7.2 8 10.4l3.2-3.2M2.5 11.5v2h11v-2" />,
  more: <path d="M3.4 8h.2M7.9 8h.2M12.4 8h.2" />,
  bin: <path d="M3 4.5h10M6 4.5v-2h4v2M4.2 4.5l.6 9h6.4l.6-9" />,
  warning: <path d="M8 2 14.6 13.5H1.4zM8 6.3v3.4M8 11.5v.3" />,
  look: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" class="filled" />
    </>
  ),
} as const satisfies Record<string, JSX.Element>;

export type GlyphName = keyof typeof shapes;

/** Decorative picture beside words, or on a button with a label. */
export function Glyph({ name }: { readonly name: GlyphName }) {
  return (
    <svg class="glyph" viewBox="0 0 16 16" aria-hidden="true">
      {shapes[name]}
    </svg>
  );
}
