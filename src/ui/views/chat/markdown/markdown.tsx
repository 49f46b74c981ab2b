import type { Token, Tokens } from 'marked';
import { Component, type ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { CodeBlock } from './code-block.tsx';
import { decodeEntities } from './entities.ts';
import { GrowingText } from './growing-text.tsx';
import { safeHref } from './links.ts';

/** Blocks that are compared together. */
const partBlocks = 64;

/**
 * Draws the blocks of a Markdown text. Nothing of it becomes HTML: each token is one element of ours, or text. Pictures are
 * links, because fetching one reveals a part of the conversation to its server.
 */
export function Markdown({ blocks }: { readonly blocks: readonly Token[] }) {
  const parts: ComponentChildren[] = [];
  for (let from = 0; from < blocks.length; from += partBlocks)
    parts.push(<Part key={from} tokens={blocks.slice(from, from + partBlocks)} />);
  return <div class="prose">{parts}</div>;
}

interface PartProps {
  readonly tokens: readonly Token[];
}

/** Blocks of a text. A settled block stays the same object, so that it is not drawn again. */
class Part extends Component<PartProps> {
  override shouldComponentUpdate({ tokens }: PartProps): boolean {
    return tokens.length !== this.props.tokens.length || tokens.some((token, at) => token !== this.props.tokens[at]);
  }

  override render() {
    return blocks(this.props.tokens);
  }
}

const text = (written: string): ComponentChildren => <GrowingText text={visible(decodeEntities(written))} />;

interface BlockProps {
  readonly token: Token;
}

class Block extends Component<BlockProps> {
  override shouldComponentUpdate({ token }: BlockProps): boolean {
    return token !== this.props.token;
  }

  override render() {
    return block(this.props.token);
  }
}

function blocks(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, index) => <Block key={index} token={token} />);
}

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case 'heading':
      return <Heading token={token as Tokens.Heading} />;
    case 'paragraph':
      return <p dir="auto">{inline(token.tokens)}</p>;
    case 'text':
      return token.tokens ? inline(token.tokens) : text(token.text);
    case 'code':
      return <CodeBlock text={token.text} language={(token as Tokens.Code).lang ?? ''} />;
    case 'blockquote':
      return <blockquote dir="auto">{blocks(token.tokens)}</blockquote>;
    case 'list':
      return <List token={token as Tokens.List} />;
    case 'table':
      return <Table token={token as Tokens.Table} />;
    case 'hr':
      return <hr />;
    case 'space':
      return null;
    case 'html':
      return (
        <p class="raw" dir="auto">
          {visible(token.raw.trimEnd())}
        </p>
      );
    default:
      return inline([token]);
  }
}

/** Items of one list, and rows of one table, shown initially. */
const firstItems = 200;

/** The first items, and a button for more. */
function useShown<T>(items: readonly T[]): readonly [readonly T[], ComponentChildren] {
  const [limit, setLimit] = useState(firstItems);
  const hidden = items.length - limit;
  if (hidden <= 0) return [items, null];
  const more = (
    <button type="button" class="bare" onClick={() => setLimit(limit * 8)}>
      Show more ({hidden.toLocaleString()})
    </button>
  );
  return [items.slice(0, limit), more];
}

/** Heading of an answer, two levels lower, because the page has its own headings. */
function Heading({ token }: { readonly token: Tokens.Heading }) {
  const Name = `h${Math.min(6, token.depth + 2)}` as 'h3';
  return <Name dir="auto">{inline(token.tokens)}</Name>;
}

function List({ token }: { readonly token: Tokens.List }) {
  const [shown, more] = useShown(token.items);
  const items = shown.map((item, index) => (
    <li key={index} dir="auto" class={item.task ? 'task' : undefined}>
      {item.task && <span class="box">{item.checked ? '☑ ' : '☐ '}</span>}
      {blocks(item.tokens.filter(({ type }) => type !== 'checkbox'))}
    </li>
  ));
  const start = Number(token.start);
  return (
    <>
      {token.ordered ? (
        <ol dir="auto" start={Number.isSafeInteger(start) ? start : 1}>
          {items}
        </ol>
      ) : (
        <ul dir="auto">{items}</ul>
      )}
      {more}
    </>
  );
}

function Table({ token }: { readonly token: Tokens.Table }) {
  const [shown, more] = useShown(token.rows);
  const cell = (each: Tokens.TableCell, index: number, Name: 'th' | 'td') => (
    <Name key={index} dir="auto" class={each.align === 'right' ? 'number' : undefined}>
      {inline(each.tokens)}
    </Name>
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
    <div class="wide-table" tabIndex={0}>
      <table>
        <thead>
          <tr>{token.header.map((each, index) => cell(each, index, 'th'))}</tr>
        </thead>
        <tbody>
          {shown.map((row, line) => (
            <tr key={line}>{row.map((each, index) => cell(each, index, 'td'))}</tr>
          ))}
        </tbody>
      </table>
      {more}
    </div>
  );
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { readonly token: Token }) {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens)}</strong>;
    case 'em':
      return <em>{inline(token.tokens)}</em>;
    case 'del':
      return <del>{inline(token.tokens)}</del>;
    case 'codespan':
      return <code>{visible(token.text)}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <Link href={token.href}>{inline(token.tokens)}</Link>;
    case 'image':
      return <Link href={token.href}>Picture: {token.text ? text(token.text) : visible(token.href)}</Link>;
    case 'checkbox':
      return null;
    case 'html':
      return <>{visible(token.raw)}</>;
    case 'escape':
      return <>{visible(token.text)}</>;
    default:
      return (
        <>{'tokens' in token && token.tokens ? inline(token.tokens) : text('text' in token ? token.text : token.raw)}</>
      );
  }
}

/** The address is shown where it is pointed at: its words may name another one. */
function Link({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const address = safeHref(decodeEntities(href));
  if (address === null) return <span title="Not a link that can be followed">{children}</span>;
  return (
    <a href={address} title={visible(address)} target="_blank" rel="noreferrer">
      {children}
    </a>
  );
}
