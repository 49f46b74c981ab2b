import type { Shape, Tone } from './tone.ts';

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="logo-plate" />
      <circle cx="16" cy="16" r="7.5" class="logo-ring" />
      <circle cx="23" cy="9" r="4" class="logo-dot" />
    </svg>
  );
}

/** Mark of a state, which is recognisable by its shape as well as by its colour. */
export function Mark({ tone, shape }: { readonly tone: Tone; readonly shape: Shape }) {
  return (
    <svg class={`mark ${tone}`} viewBox="0 0 16 16" aria-hidden="true">
      {glyphs[shape]}
    </svg>
  );
}

const glyphs: Record<Shape, preact.JSX.Element> = {
  ring: <circle cx="8" cy="8" r="5" class="line" />,
  disc: <circle cx="8" cy="8" r="5.5" class="solid" />,
  arc: (
    <g class="turning">
      <circle cx="8" cy="8" r="5.5" class="line faint" />
      <path d="M8 2.5A5.5 5.5 0 0 1 13.5 8" class="line" />
    </g>
  ),
  triangle: (
    <>
      <path d="M8 1.5 15 14H1z" class="solid" />
      <path d="M8 6v4M8 11.8v.6" class="cut" />
    </>
  ),
  square: <rect x="3" y="3" width="10" height="10" rx="1.5" class="line" />,
  cross: (
    <>
      <rect x="2" y="2" width="12" height="12" rx="2" class="solid" />
      <path d="m5.5 5.5 5 5m0-5-5 5" class="cut" />
    </>
  ),
  diamond: <path d="M8 2.5 13.5 8 8 13.5 2.5 8z" class="line" />,
};
