import { stackFiles } from '../layout.ts';
import { marked } from './marker.ts';

/** Keeps secrets, checkouts and our own records out of a repository that a user makes of the stack. */
export function gitignore(): string {
  const lines = [
    `/${stackFiles.env}`,

    `/${stackFiles.secrets}/`,
    `/${stackFiles.workspace}/`,
    `/${stackFiles.state}/`,
  ];
  return marked(`${lines.join('\n')}\n`);
}
