import { pull } from './bookshop.ts';
import type { DemoComment, DemoPull } from './pull.ts';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? sign);

/** Text of a comment without its hidden markers. */
const wordsOf = (body: string): string => escaped(body.replace(/<!--[\s\S]*?-->/g, '').trim());

const articleOf = ({ id, path, line, body }: DemoComment): string => {
  const place = path === undefined ? 'Summary' : `${path}${line === undefined ? '' : `:${line}`}`;
  return `<article id="comment-${id}"><h2>${escaped(place)}</h2><pre>${wordsOf(body)}</pre></article>`;
};

const style = `:root { color-scheme: light dark }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif }
article { margin: 1rem 0; padding: 0 1rem; border: 1px solid #8886; border-radius: 8px }
h2 { font: 600 14px ui-monospace, monospace }
pre { font: inherit; white-space: pre-wrap; overflow-wrap: anywhere }`;

/** Plain HTML page of the pull request, with everything published. */
export function pageOf(demo: DemoPull): string {
  const published = [...demo.reviewComments.values()].filter(
    ({ reviewId }) => demo.reviews.get(reviewId ?? 0)?.state !== 'PENDING',
  );
  const comments = [...demo.conversation.values(), ...published].map(articleOf).join('\n');
  const checks = [...demo.checkRuns.values()].map(({ title }) => escaped(title)).join(', ') || 'none';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(pull.title)}</title><style>${style}</style></head>
<body><main><h1>${escaped(pull.title)}</h1>
<p>Stand-in of <code>oratorio backend --demo</code> for ${escaped(demo.fullName)}#${pull.number} on GitHub. It holds the published reviews of the backend.</p>
<p id="checks">Check runs: ${checks}</p>
${comments || '<p>Nothing is published yet.</p>'}
</main></body></html>
`;
}
