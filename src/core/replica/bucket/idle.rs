//! Giving back what lies idle. It is a fence like any other: recorded first, then said, so that a
//! Return that is lost costs a recall and no token.

use super::recall::returned;
use super::{Bucket, Moment};
use crate::message::Return;
use crate::replica::cell::{Cell, Tenant};
use crate::units::{LocalTime, Span, Tokens};
use crate::window::Window;

/// What counts as idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// The whole replica has seen no request for long: every lease goes back.
    Replica,
    /// What a cell has above its standing share goes back if it was not used for so long, and for
    /// half of its window.
    Cells(Span),
}

impl Idle {
    /// Free tokens that a cell keeps; all of them if it is not idle.
    fn keeps(self, cell: &Cell, now: LocalTime) -> Tokens {
        match self {
            Self::Replica => Tokens::ZERO,
            Self::Cells(after) => {
                if now.since(cell.demand.at) < after.max(half(cell.window)) {
                    return cell.amounts.free();
                }
                cell.standing.minus(cell.amounts.used)
            }
        }
    }
}

fn half(window: Window) -> Span {
    Span::new(window.length().get() / 2)
}

impl Bucket {
    /// Fences what is idle in the cells of this tenancy and gives what to say of it. A cell with
    /// reservations is at work; one of an earlier epoch is fenced when it is registered.
    pub fn give_back_idle(&mut self, idle: Idle, tenant: Tenant, now: Moment) -> Vec<Return> {
        let begun = |cell: &Cell| cell.window.start() <= now.service.earliest;
        let live = |cell: &Cell| begun(cell) && !cell.is_over(now.service.earliest);
        let mut returns = Vec::new();
        for cell in self.cells.iter_mut().flatten() {
            if cell.tenant != tenant || !live(cell) {
                continue;
            }
            cell.settle_expired(now.local);
            let keep = idle.keeps(cell, now.local);
            if cell.amounts.reserved > Tokens::ZERO || cell.amounts.free() <= keep {
                continue;
            }
            cell.fence(keep);
            returns.push(returned(cell, now.local));
        }
        returns
    }
}

#[cfg(test)]
mod tests;
