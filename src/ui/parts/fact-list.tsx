import type { ComponentChildren } from 'preact';
import './fact-list.css';

/** List of names and values, one below the other. */
export const FactList = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="fact-list">{children}</dl>
);

export const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);
