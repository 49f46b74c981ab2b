import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HttpError, type Reply, type RequestContext, staticDocument } from '../../http/index.ts';
import { packageRoot } from '../../lib/index.ts';

/** Addresses in the built page, which lies at the root of its server: that of a workspace lies deeper, and shares all files. */
const relative = /((?:src|href)=")\.\//g;

/** Makes the handler of `/w/<id>/`: the built page, the same for every workspace. It is read at the first request. */
export function pageDocument(): (context: Pick<RequestContext, 'header'>) => Reply {
  let document: ReturnType<typeof staticDocument> | undefined;
  return (context) => {
    document ??= staticDocument('/index.html', Buffer.from(readPage().replace(relative, '$1/')));
    return document(context);
  };
}

function readPage(): string {
  try {
    return readFileSync(join(packageRoot(), 'dist', 'ui', 'index.html'), 'utf8');
  } catch {
    throw new HttpError(
      503,
      'workspaceUnavailable',
      'The page has not been built: run "npm run build" in the checkout.',
    );
  }
}
