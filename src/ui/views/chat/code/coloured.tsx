import './code.css';
import type { Stretch } from './languages.ts';

/** One coloured line. */
export function ColouredLine({ line }: { readonly line: readonly Stretch[] }) {
  return (
    <>
      {line.map(({ text, colour }, index) =>
        colour === null ? (
          text
        ) : (
          <span key={index} class={`code-${colour}`}>
            {text}
          </span>
        ),
      )}
    </>
  );
}
