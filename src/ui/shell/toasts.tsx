import type { App } from '../app/app.ts';
import { Glyph } from '../parts/glyphs.tsx';

/** Notices that stay for a few seconds. Screen readers announce them without moving the focus. */
export function Toasts({ app }: { readonly app: App }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {app.toasts.value.map((toast) => (
        <div key={toast} class={toast.tone ?? 'neutral'}>
          {toast.tone === 'danger' && <Glyph name="warning" />}
          <span>{toast.text}</span>
          {toast.undo && (
            <button type="button" onClick={toast.undo}>
              Undo
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
