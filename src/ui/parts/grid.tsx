import type { HTMLAttributes } from 'preact';

/*
 * Rows and cells of a `VirtualList` that is a grid or treegrid. They are not table elements, because a table cannot leave
 * rows out; the roles say the same.
 */

type Div = HTMLAttributes<HTMLDivElement>;

/** The row of column headers: the first of all rows. */
export const HeaderRow = (props: Div) => <div {...props} {...{ role: 'row', 'aria-rowindex': 1 }} />;
export const ColumnHeader = (props: Div) => <div {...props} {...{ role: 'columnheader' }} />;
export const Cell = (props: Div) => <div {...props} {...{ role: 'gridcell' }} />;
