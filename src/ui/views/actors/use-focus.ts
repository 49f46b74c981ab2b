import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Gives the focus to an element when a change of `what` has removed the element that had it. */
export function useFocusInsteadOf(element: RefObject<HTMLElement | null>, what: unknown): void {
  const before = useRef(what);
  useLayoutEffect(() => {
    if (before.current === what) return;
    before.current = what;
    if (document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, [what]);
}
