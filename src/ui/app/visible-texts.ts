import { options, type VNode } from 'preact';
import { visible } from '../../lib/browser.ts';

/** Attributes that a browser shows or reads out. */
const shownAttributes = ['title', 'aria-label', 'alt', 'placeholder'] as const;

/**
 * Makes every text of the page safe to show before it is drawn: names and texts of threads, files and workspaces are foreign, and a
 * mark such as U+202E would reverse the text beside it. Call it once, before the first drawing.
 */
export function showTextsVisibly(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    makeVisible(node as VNode<Record<string, unknown>>);
    before?.(node);
  };
}

function makeVisible({ type, props }: VNode<Record<string, unknown>>): void {
  const { children } = props;
  if (typeof children === 'string') props['children'] = visible(children);
  else if (Array.isArray(children) && children.some(isHiding)) props['children'] = children.map(shown);
  if (typeof type !== 'string') return;
  for (const name of shownAttributes) {
    const value = props[name];
    if (typeof value === 'string') props[name] = visible(value);
  }
}

const shown = (child: unknown): unknown => (typeof child === 'string' ? visible(child) : child);
const isHiding = (child: unknown): boolean => shown(child) !== child;
